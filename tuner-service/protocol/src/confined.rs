//! Confines the calling process so that taking it over gains nothing: it runs as nobody, with the
//! files that it has open and a few system calls.

use std::collections::BTreeMap;

use nix::libc;
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule};

/// The kernel's overflow uid and gid, which everywhere belong to nobody.
const NOBODY: u32 = 65534;

/// Gives up root, new privileges, and all system calls except `more` and those that read and write
/// open files, wait, and end. Any other call kills the process. It also ends after `life` seconds,
/// if that is given. A restriction that the kernel does not have, or that the surroundings do not
/// allow, is left out.
pub fn confine(life: Option<u32>, more: &[i64]) {
    if let Some(life) = life {
        nix::unistd::alarm::set(life);
    }
    if geteuid().is_root() {
        let _ = setgroups(&[]);
        let (gid, uid) = (Gid::from_raw(NOBODY), Uid::from_raw(NOBODY));
        let _ = setresgid(gid, gid, gid);
        let _ = setresuid(uid, uid, uid);
    }
    if let Some(filter) = filter(more) {
        let _ = seccompiler::apply_filter(&filter);
    }
}

/// The filter; `None` on a processor that the library does not know.
fn filter(more: &[i64]) -> Option<BpfProgram> {
    let any = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_ppoll,
        libc::SYS_exit_group,
        libc::SYS_exit,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigreturn,
        // The calls with which a Rust program ends.
        libc::SYS_sigaltstack,
        libc::SYS_munmap,
    ];
    let calls = any.iter().chain(more);
    let rules: BTreeMap<i64, Vec<SeccompRule>> = calls.map(|call| (*call, Vec::new())).collect();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into().ok()?,
    );
    filter.ok()?.try_into().ok()
}
