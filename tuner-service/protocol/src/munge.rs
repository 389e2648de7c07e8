//! MUNGE credentials by libmunge (`munge.h`). Identity is the encoding process's effective uid.
//! Calls block, up to about ten seconds when munged is down: callers keep them inside a deadline.

use std::path::PathBuf;

/// A decoded credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The signed text.
    pub payload: Vec<u8>,
    /// The sender's effective uid, as munged vouches for it.
    pub uid: u32,
    /// The sender's effective gid.
    pub gid: u32,
}

/// Why libmunge refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MungeError {
    /// munged could not be asked, or libmunge failed.
    #[error(
        "munge ({socket}): {message}; is munged running, and is its socket the one configured?"
    )]
    Unavailable {
        /// The socket.
        socket: String,
        /// libmunge's message.
        message: String,
    },
    /// The credential is forged, expired, replayed or for another reader.
    #[error("munge refuses the credential: {0}")]
    Refused(String),
}

/// Makes and reads credentials. Tests replace munged here.
pub trait Credentials: Send + Sync {
    /// A credential over `payload` for the uid `reader` alone. Errs when munged cannot be asked.
    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, MungeError>;

    /// Decodes a credential once. Errs when munged cannot be asked, or refuses (a replay, too).
    fn decode(&self, credential: &str) -> Result<Decoded, MungeError>;
}

/// Seconds that a credential is valid: above a cluster's clock skew, with little to replay.
const TIME_TO_LIVE: std::ffi::c_int = 60;

/// munged, by its socket.
#[derive(Clone, Debug, Default)]
pub struct Munge {
    /// The socket; `None`: libmunge's default.
    pub socket: Option<PathBuf>,
}

impl Credentials for Munge {
    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, MungeError> {
        let context = ffi::Context::new(self.socket.as_deref())?;
        context.set_time_to_live(TIME_TO_LIVE)?;
        context.restrict_to_uid(reader)?;
        context.encode(payload)
    }

    fn decode(&self, credential: &str) -> Result<Decoded, MungeError> {
        ffi::Context::new(self.socket.as_deref())?.decode(credential)
    }
}

/// The only unsafe code of this crate: libmunge's C interface.
mod ffi {
    #![allow(unsafe_code)]

    use std::ffi::{CStr, CString, c_char, c_int, c_void};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::ptr;

    use super::{Decoded, MungeError};

    // `munge_opt_t` and `munge_err_t` in munge.h, part of libmunge's stable ABI.
    const MUNGE_OPT_TTL: c_int = 4;
    const MUNGE_OPT_SOCKET: c_int = 8;
    const MUNGE_OPT_UID_RESTRICTION: c_int = 9;
    const EMUNGE_SUCCESS: c_int = 0;
    const EMUNGE_BAD_CRED: c_int = 8;
    const EMUNGE_CRED_UNAUTHORIZED: c_int = 18;

    #[link(name = "munge")]
    unsafe extern "C" {
        fn munge_ctx_create() -> *mut c_void;
        fn munge_ctx_destroy(context: *mut c_void);
        fn munge_ctx_set(context: *mut c_void, option: c_int, ...) -> c_int;
        fn munge_encode(
            credential: *mut *mut c_char,
            context: *mut c_void,
            payload: *const c_void,
            length: c_int,
        ) -> c_int;
        fn munge_decode(
            credential: *const c_char,
            context: *mut c_void,
            payload: *mut *mut c_void,
            length: *mut c_int,
            uid: *mut u32,
            gid: *mut u32,
        ) -> c_int;
        fn munge_strerror(error: c_int) -> *const c_char;
        fn free(pointer: *mut c_void);
    }

    fn message(error: c_int) -> String {
        // SAFETY: munge_strerror returns a static string for every number.
        unsafe { CStr::from_ptr(munge_strerror(error)) }
            .to_string_lossy()
            .into_owned()
    }

    struct Malloced<T>(*mut T);

    impl<T> Drop for Malloced<T> {
        fn drop(&mut self) {
            // SAFETY: the pointer is null or came from malloc, and nobody else frees it.
            unsafe { free(self.0.cast()) }
        }
    }

    pub(super) struct Context {
        raw: *mut c_void,
        socket: String,
    }

    impl Drop for Context {
        fn drop(&mut self) {
            // SAFETY: raw came from munge_ctx_create and is destroyed once.
            unsafe { munge_ctx_destroy(self.raw) }
        }
    }

    impl Context {
        pub(super) fn new(socket: Option<&Path>) -> Result<Self, MungeError> {
            // SAFETY: no arguments; null is checked.
            let raw = unsafe { munge_ctx_create() };
            let name = socket.map_or_else(|| "default socket".into(), |s| s.display().to_string());
            let context = Self { raw, socket: name };
            if context.raw.is_null() {
                return Err(context.unavailable("out of memory".into()));
            }
            if let Some(socket) = socket {
                let path = CString::new(socket.as_os_str().as_bytes())
                    .map_err(|_| context.unavailable("the socket's path has a NUL byte".into()))?;
                // SAFETY: MUNGE_OPT_SOCKET takes a C string, which libmunge copies.
                context.check(unsafe { munge_ctx_set(raw, MUNGE_OPT_SOCKET, path.as_ptr()) })?;
            }
            Ok(context)
        }

        pub(super) fn set_time_to_live(&self, seconds: c_int) -> Result<(), MungeError> {
            // SAFETY: MUNGE_OPT_TTL takes an int.
            self.check(unsafe { munge_ctx_set(self.raw, MUNGE_OPT_TTL, seconds) })
        }

        pub(super) fn restrict_to_uid(&self, uid: u32) -> Result<(), MungeError> {
            // SAFETY: MUNGE_OPT_UID_RESTRICTION takes a uid_t, which is 32 bits wide here.
            self.check(unsafe { munge_ctx_set(self.raw, MUNGE_OPT_UID_RESTRICTION, uid) })
        }

        pub(super) fn encode(&self, payload: &[u8]) -> Result<String, MungeError> {
            let length = c_int::try_from(payload.len())
                .map_err(|_| self.unavailable("the payload is too long".into()))?;
            let mut credential = Malloced(ptr::null_mut());
            // SAFETY: the payload is readable for `length` bytes; `credential` owns the result.
            let code = unsafe {
                munge_encode(
                    &raw mut credential.0,
                    self.raw,
                    payload.as_ptr().cast(),
                    length,
                )
            };
            self.check(code)?;
            // SAFETY: on success the credential is a NUL-terminated string.
            let text = unsafe { CStr::from_ptr(credential.0) };
            Ok(text.to_string_lossy().into_owned())
        }

        pub(super) fn decode(&self, credential: &str) -> Result<Decoded, MungeError> {
            let credential = CString::new(credential)
                .map_err(|_| MungeError::Refused("it has a NUL byte".into()))?;
            // libmunge would report a bad argument, the caller's fault; here it is the sender's.
            if credential.is_empty() {
                return Err(MungeError::Refused("it is empty".into()));
            }
            let mut payload = Malloced(ptr::null_mut::<c_void>());
            let (mut length, mut uid, mut gid) = (0, u32::MAX, u32::MAX);
            // SAFETY: all pointers are valid for the call; `payload` owns the result.
            let code = unsafe {
                munge_decode(
                    credential.as_ptr(),
                    self.raw,
                    &raw mut payload.0,
                    &raw mut length,
                    &raw mut uid,
                    &raw mut gid,
                )
            };
            // Expired, rewound and replayed credentials come with a payload; they are refused too.
            self.check(code)?;
            let bytes = match usize::try_from(length) {
                // SAFETY: on success libmunge returns `length` bytes.
                Ok(length) if length > 0 && !payload.0.is_null() => unsafe {
                    std::slice::from_raw_parts(payload.0.cast::<u8>(), length).to_vec()
                },
                _ => Vec::new(),
            };
            Ok(Decoded {
                payload: bytes,
                uid,
                gid,
            })
        }

        fn unavailable(&self, message: String) -> MungeError {
            MungeError::Unavailable {
                socket: self.socket.clone(),
                message,
            }
        }

        fn check(&self, code: c_int) -> Result<(), MungeError> {
            match code {
                EMUNGE_SUCCESS => Ok(()),
                EMUNGE_BAD_CRED..=EMUNGE_CRED_UNAUTHORIZED => {
                    Err(MungeError::Refused(message(code)))
                }
                _ => Err(self.unavailable(message(code))),
            }
        }
    }
}
