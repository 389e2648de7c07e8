//! Confines the calling process so that taking it over gains nothing: it runs as nobody, with the
//! files that it has open and a few system calls.

use std::collections::BTreeMap;

use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// The kernel's overflow uid and gid, which everywhere belong to nobody.
const NOBODY: u32 = 65534;

/// Gives up root, new privileges, and all system calls except `more` and those that read and write
/// open files, wait, and end. Any other call kills the process. It may hold `memory` bytes of data
/// at most, and leaves no core. It ends after `life` seconds, if that is given. A restriction that
/// the kernel does not have, or that the surroundings do not allow, is left out.
pub fn confine(life: Option<u32>, memory: u64, more: &[i64]) {
    let _ = setrlimit(Resource::RLIMIT_DATA, memory, memory);
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
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

/// The arguments with which a call is allowed; empty: any. New memory is for data: nothing maps a
/// file, or what could be executed.
fn rules(call: i64) -> Option<Vec<SeccompRule>> {
    if call != libc::SYS_mmap {
        return Some(Vec::new());
    }
    let bits = |of: i32| u64::try_from(of).ok();
    let (execute, anonymous) = (bits(libc::PROT_EXEC)?, bits(libc::MAP_ANONYMOUS)?);
    let is = |argument, mask, value| {
        SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(mask),
            value,
        )
        .ok()
    };
    let conditions = vec![is(2, execute, 0)?, is(3, anonymous, anonymous)?];
    Some(vec![SeccompRule::new(conditions).ok()?])
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
    let rules: BTreeMap<i64, Vec<SeccompRule>> = calls
        .map(|call| Some((*call, rules(*call)?)))
        .collect::<Option<_>>()?;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into().ok()?,
    );
    filter.ok()?.try_into().ok()
}
