"""Packages take over an installation that was made by hand, by the guide's table of files."""

from __future__ import annotations

from packages.table import table

from install import guide
from install.cluster import BOB, LOGIN, NODES, SERVICE, Site
from install.following import (
    AFTER_FILES,
    Record,
    green,
    hold,
    let_go,
    running,
    units_of,
    write_applications,
)

NODE = ("io-autotune-node", "io-autotune-common", "slurm-spank-io-autotune")
BY_HAND = {
    SERVICE: ("io-autotune-service",),
    LOGIN: ("io-autotune", *NODE),
    **dict.fromkeys(NODES, NODE),
}
"""By whose rows of the table each host is installed."""
PROGRAMS = {SERVICE: "/usr/sbin/io-autotuned", LOGIN: "/usr/bin/io-autotune"}
PROGRAM = "/usr/libexec/io-autotune/io-autotune-node"
TAKING_OVER = ["After an installation by hand"]


def install_by_hand(site: Site) -> int:
    """Install files by the table, with the owners and modes that it names, and go on by the guide.

    The bytes are those of the packages, which were built of the same tree.
    """
    installed = 0
    guide.follow(site, guide.INSTALL, ["2. Account"])
    for host, packages in BY_HAND.items():
        script = "mkdir /root/built\n"
        for package in packages:
            script += f"dpkg-deb --extract {guide.NOW}/{package}_*.deb /root/built\n"
        for path, package, owner, mode in table():
            if package in packages and not path.startswith("/etc/slurm/"):
                place = path.replace("/usr/lib/systemd/system/", "/etc/systemd/system/")
                directory = place.rpartition("/")[0]
                user, group = owner.split(":")
                # In bookworm's packages units are in /lib.
                script += (
                    f"mkdir -p {directory}\n"
                    f"files=$(ls /root/built{path} || ls /root/built{path.removeprefix('/usr')})\n"
                    f"install -o {user} -g {group} -m {mode} -t {directory} $files\n"
                )
                installed += 1
        site[host].run(f"{script}rm -r /root/built\n")
    guide.follow(site, guide.INSTALL, AFTER_FILES, words=guide.BY_HAND)
    write_applications(site)
    return installed


def configuration(site: Site) -> set[str]:
    """Return the hosts, sums and paths of all files that an admin may have changed."""
    script = (
        "find /etc/io-autotune /etc/slurm/plugstack.conf /etc/systemd/system/io-autotuned-*.d"
        " -type f ! -name '*.dpkg-*' -exec sha256sum {} + 2>/dev/null | sort"
    )
    return {
        f"{host}: {line}"
        for host in BY_HAND
        for line in site[host].run(f"{script} || true").splitlines()
    }


def test_5_packages_take_over(here: Site, record_property: Record) -> None:
    """Packages take over an installation by hand: configuration, history and a running job stay."""
    record_property("files by hand", install_by_hand(here))
    jobs = [here.submit("--io-autotune", "ocean.sh") for _ in range(3)]
    here.ended(jobs)
    runs = here.judged("ocean.sh", jobs)
    assert [run["state"] for run in runs] == ["counted"] * len(jobs)
    # An admin's changes, beyond what the guide asks for.
    here[SERVICE].run("sed -i 's/^budget = 50/budget = 40/' /etc/io-autotune/service.toml")
    here[SERVICE].run("echo '# ours' >>/etc/io-autotune/accelerators.d/romio.toml")
    before = configuration(here)
    assert len(before) > len(BY_HAND)
    account = here[SERVICE].run("getent passwd io-autotune")
    held = hold(here)
    running(here, held)

    guide.follow(here, guide.PACKAGES, TAKING_OVER)
    # A file that was not there may come along.
    assert before <= configuration(here), before - configuration(here)
    assert here[SERVICE].run("getent passwd io-autotune") == account
    for host in BY_HAND:
        owner = here[host].run(f"dpkg --search {PROGRAMS.get(host, PROGRAM)}")
        assert owner.startswith("io-autotune"), f"{host}: {owner}"
        said = here[host].run("systemctl --failed --no-legend; systemctl is-system-running || true")
        assert said.strip() == "running", f"{host}: {said}"
    assert not [file for file in units_of(here).values() if file.startswith("/etc/")]
    let_go(here, held)
    jobs.append(here.submit("--io-autotune", "ocean.sh"))
    here.ended(jobs)
    runs = here.judged("ocean.sh", jobs)
    assert [run["state"] for run in runs] == ["counted"] * len(jobs)
    green(here, BOB, LOGIN)
    record_property("runs before and after in one history", len(runs))
