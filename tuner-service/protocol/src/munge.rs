//! MUNGE credentials by libmunge (`munge.h`). Identity is the encoding process's effective uid.
//! Calls block, up to about ten seconds when munged is down: callers keep them inside a deadline.
//!
//! libmunge is loaded by the first call, so that programs start on hosts without it.

use std::path::PathBuf;

use crate::credentials::{Backend, CredentialError, Credentials, Decoded, TIME_TO_LIVE};

/// MUNGE, through munged's socket.
#[derive(Debug)]
pub(crate) struct Munge {
    /// The socket; `None`: libmunge's default.
    pub(crate) socket: Option<PathBuf>,
}

impl Credentials for Munge {
    fn backend(&self) -> Backend {
        Backend::Munge
    }

    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, CredentialError> {
        let context = ffi::Context::new(self.socket.as_deref())?;
        context.set_time_to_live(TIME_TO_LIVE.into())?;
        context.restrict_to_uid(reader)?;
        context.encode(payload)
    }

    fn decode(&self, credential: &str) -> Result<Decoded, CredentialError> {
        ffi::Context::new(self.socket.as_deref())?.decode(credential)
    }
}

fn unavailable(problem: String) -> CredentialError {
    CredentialError::Unavailable {
        backend: Backend::Munge,
        problem,
    }
}

fn refused(problem: String) -> CredentialError {
    CredentialError::Refused {
        backend: Backend::Munge,
        problem,
    }
}

/// The only unsafe code of this crate: libmunge's C interface.
mod ffi {
    #![allow(unsafe_code)]

    use std::ffi::{CStr, CString, c_char, c_int, c_void};
    use std::net::{IpAddr, Ipv4Addr};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::ptr;
    use std::sync::OnceLock;

    use libloading::Library;

    use super::{refused, unavailable};
    use crate::credentials::{CredentialError, Decoded};

    // `munge_opt_t` and `munge_err_t` in munge.h, part of libmunge's stable ABI.
    const MUNGE_OPT_TTL: c_int = 4;
    const MUNGE_OPT_ADDR4: c_int = 5;
    const MUNGE_OPT_SOCKET: c_int = 8;
    const MUNGE_OPT_UID_RESTRICTION: c_int = 9;
    const EMUNGE_SUCCESS: c_int = 0;
    const EMUNGE_BAD_CRED: c_int = 8;
    const EMUNGE_CRED_UNAUTHORIZED: c_int = 18;

    unsafe extern "C" {
        fn free(pointer: *mut c_void);
    }

    /// libmunge's functions, as `munge.h` declares them.
    struct Libmunge {
        create: unsafe extern "C" fn() -> *mut c_void,
        destroy: unsafe extern "C" fn(*mut c_void),
        set: unsafe extern "C" fn(*mut c_void, c_int, ...) -> c_int,
        get: unsafe extern "C" fn(*mut c_void, c_int, ...) -> c_int,
        encode: unsafe extern "C" fn(*mut *mut c_char, *mut c_void, *const c_void, c_int) -> c_int,
        decode: unsafe extern "C" fn(
            *const c_char,
            *mut c_void,
            *mut *mut c_void,
            *mut c_int,
            *mut u32,
            *mut u32,
        ) -> c_int,
        strerror: unsafe extern "C" fn(c_int) -> *const c_char,
        /// Keeps the library, and so its functions, in memory.
        _library: Library,
    }

    impl Libmunge {
        fn load(name: &str) -> Result<Self, libloading::Error> {
            // SAFETY: libmunge does nothing when it is loaded, and its functions have these types
            // in its stable ABI, whose number is in the name.
            unsafe {
                let library = Library::new(name)?;
                Ok(Self {
                    create: *library.get(b"munge_ctx_create\0")?,
                    destroy: *library.get(b"munge_ctx_destroy\0")?,
                    set: *library.get(b"munge_ctx_set\0")?,
                    get: *library.get(b"munge_ctx_get\0")?,
                    encode: *library.get(b"munge_encode\0")?,
                    decode: *library.get(b"munge_decode\0")?,
                    strerror: *library.get(b"munge_strerror\0")?,
                    _library: library,
                })
            }
        }

        /// The library, loaded once. A failure is not kept, because the package may be installed
        /// later.
        fn get() -> Result<&'static Self, CredentialError> {
            static LOADED: OnceLock<Libmunge> = OnceLock::new();
            match LOADED.get() {
                Some(loaded) => Ok(loaded),
                None => {
                    let loaded = Self::load(NAME).map_err(|error| missing(&error))?;
                    Ok(LOADED.get_or_init(|| loaded))
                }
            }
        }

        fn message(&self, error: c_int) -> String {
            // SAFETY: munge_strerror returns a static string for every number.
            unsafe { CStr::from_ptr((self.strerror)(error)) }
                .to_string_lossy()
                .into_owned()
        }
    }

    const NAME: &str = "libmunge.so.2";

    fn missing(error: &libloading::Error) -> CredentialError {
        unavailable(format!(
            "{NAME} cannot be loaded: install the package libmunge2 (Debian) or munge-libs (EL), \
             or write auth = \"slurm\" where Slurm has AuthType=auth/slurm ({error})"
        ))
    }

    struct Malloced<T>(*mut T);

    impl<T> Drop for Malloced<T> {
        fn drop(&mut self) {
            // SAFETY: the pointer is null or came from malloc, and nobody else frees it.
            unsafe { free(self.0.cast()) }
        }
    }

    pub(super) struct Context {
        libmunge: &'static Libmunge,
        raw: *mut c_void,
        socket: String,
    }

    impl Drop for Context {
        fn drop(&mut self) {
            // SAFETY: raw came from munge_ctx_create and is destroyed once.
            unsafe { (self.libmunge.destroy)(self.raw) }
        }
    }

    impl Context {
        pub(super) fn new(socket: Option<&Path>) -> Result<Self, CredentialError> {
            let libmunge = Libmunge::get()?;
            // SAFETY: no arguments; null is checked.
            let raw = unsafe { (libmunge.create)() };
            let socket_name =
                socket.map_or_else(|| "default socket".into(), |s| s.display().to_string());
            let context = Self {
                libmunge,
                raw,
                socket: socket_name,
            };
            if context.raw.is_null() {
                return Err(context.unavailable("out of memory".into()));
            }
            if let Some(socket) = socket {
                let path = CString::new(socket.as_os_str().as_bytes())
                    .map_err(|_| context.unavailable("the socket's path has a NUL byte".into()))?;
                // SAFETY: MUNGE_OPT_SOCKET takes a C string, which libmunge copies.
                context.check(unsafe { (libmunge.set)(raw, MUNGE_OPT_SOCKET, path.as_ptr()) })?;
            }
            Ok(context)
        }

        pub(super) fn set_time_to_live(&self, seconds: c_int) -> Result<(), CredentialError> {
            // SAFETY: MUNGE_OPT_TTL takes an int.
            self.check(unsafe { (self.libmunge.set)(self.raw, MUNGE_OPT_TTL, seconds) })
        }

        pub(super) fn restrict_to_uid(&self, uid: u32) -> Result<(), CredentialError> {
            // SAFETY: MUNGE_OPT_UID_RESTRICTION takes a uid_t, which is 32 bits wide here.
            self.check(unsafe { (self.libmunge.set)(self.raw, MUNGE_OPT_UID_RESTRICTION, uid) })
        }

        pub(super) fn encode(&self, payload: &[u8]) -> Result<String, CredentialError> {
            let length = c_int::try_from(payload.len())
                .map_err(|_| self.unavailable("the payload is too long".into()))?;
            let mut credential = Malloced(ptr::null_mut());
            // SAFETY: the payload is readable for `length` bytes; `credential` owns the result.
            let code = unsafe {
                (self.libmunge.encode)(
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

        pub(super) fn decode(&self, credential: &str) -> Result<Decoded, CredentialError> {
            let credential =
                CString::new(credential).map_err(|_| refused("it has a NUL byte".into()))?;
            // libmunge would report a bad argument as the caller's fault; here it is the sender's.
            if credential.is_empty() {
                return Err(refused("it is empty".into()));
            }
            let mut payload = Malloced(ptr::null_mut::<c_void>());
            let (mut length, mut uid, mut gid) = (0, u32::MAX, u32::MAX);
            // SAFETY: all pointers are valid for the call; `payload` owns the result.
            let code = unsafe {
                (self.libmunge.decode)(
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
                origin: self.origin(),
            })
        }

        /// The address of the host on which the credential decoded last was encoded, as its munged
        /// states it.
        fn origin(&self) -> Option<IpAddr> {
            let mut address = 0_u32;
            // SAFETY: MUNGE_OPT_ADDR4 takes a struct in_addr, which is these 32 bits.
            let code = unsafe { (self.libmunge.get)(self.raw, MUNGE_OPT_ADDR4, &raw mut address) };
            let address = Ipv4Addr::from(address.to_ne_bytes());
            (code == EMUNGE_SUCCESS && !address.is_unspecified()).then_some(address.into())
        }

        fn unavailable(&self, message: String) -> CredentialError {
            unavailable(format!(
                "{message} ({}); is munged running, and is its socket the one configured?",
                self.socket
            ))
        }

        fn check(&self, code: c_int) -> Result<(), CredentialError> {
            match code {
                EMUNGE_SUCCESS => Ok(()),
                EMUNGE_BAD_CRED..=EMUNGE_CRED_UNAUTHORIZED => {
                    Err(refused(self.libmunge.message(code)))
                }
                _ => Err(self.unavailable(self.libmunge.message(code))),
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_host_without_libmunge_is_told_which_package_has_it() {
            let Err(error) = Libmunge::load("libmunge.so.none") else {
                unreachable!("there is no such library");
            };
            let text = missing(&error).to_string();
            assert!(text.contains("install the package libmunge2"), "{text}");
        }
    }
}
