//! What systemd is told: that requests are served, that the service stops, and, if it asks, that
//! both runtimes go on. Under anything else nothing is said.

use sd_notify::NotifyState;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Says it. A supervisor that does not listen changes nothing here.
pub(crate) fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd is not told");
    }
}

/// Says that a reload has begun: `Ready` ends it (sd_notify(3), `RELOADING=1`).
pub(crate) fn tell_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "systemd is not told"),
    }
}

/// Tells systemd's watchdog twice in its time that this runtime and the users' have each done a
/// piece of work. A runtime whose threads all hang does none, and systemd starts the service again.
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
