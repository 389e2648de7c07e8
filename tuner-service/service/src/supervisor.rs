//! Notifications to systemd: requests are served, the service stops, and, if the watchdog is on,
//! both runtimes work. Without systemd nothing is sent.

use sd_notify::NotifyState;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Sends the states. A failure changes nothing in the service.
pub(crate) fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd is not told");
    }
}

/// Notifies that a reload has begun; `Ready` ends it (sd_notify(3), `RELOADING=1`).
pub(crate) fn tell_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "systemd is not told"),
    }
}

/// Notifies systemd's watchdog, twice in its period, once this runtime and the users' have each
/// done a piece of work. A runtime whose threads all hang does none, and systemd then restarts the
/// service.
pub(crate) async fn watched(users: Handle, mut stopping: watch::Receiver<bool>) {
    let Some(within) = sd_notify::watchdog_enabled() else {
        return;
    };
    loop {
        tokio::select! {
            _ = stopping.changed() => return,
            () = tokio::time::sleep(within / 2) => {}
        }
        if users.spawn(async {}).await.is_ok() {
            tell(&[NotifyState::Watchdog]);
        }
    }
}
