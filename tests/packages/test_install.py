"""Packages in clean roots: what installing, upgrading, removing and purging them does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from packages.rooms import TREE
from packages.site import LATER, PACKAGES, SMALL, Site, names
from packages.table import COPIED, table
from packages.tree import released

ACCOUNTS = {"io-autotune", "io-autotune-collector", "io-autotune-report"}
LISTED = f"""
for package in {" ".join(PACKAGES)}; do
    dpkg -L $package | while read -r file; do
        [ -d "$file" ] || stat --format="$package %n %U:%G %a" "$file"
    done
done
"""


def files(site: Site) -> dict[str, tuple[str, str, str]]:
    """Return the package, owner and mode of each file, by its path without the link /lib."""
    said = site.run(f"install {names('now')}\n{LISTED}")
    found = {}
    for line in said.splitlines():
        package, rest = line.split(" ", 1)
        path, owner, mode = rest.rsplit(" ", 2)
        found[re.sub(r"^/lib/", "/usr/lib/", path)] = (package, owner, mode.zfill(4))
    return found


def test_the_table_is_read() -> None:
    rows = table()
    assert ("/usr/sbin/io-autotuned", "io-autotune-service", "root:root", "0755") in rows
    units = [path for path, *_ in rows if path.startswith("/usr/lib/systemd/system/")]
    assert "/usr/lib/systemd/system/io-autotune-flush.timer" in units
    assert {Path(unit).name for unit in units} == {
        unit.name for unit in (TREE / "deploy/systemd").iterdir() if "report" not in unit.name
    }


def test_files_owners_and_modes_are_those_of_the_guide(here: Site) -> None:
    found = files(here)
    for said, package, owner, mode in table():
        path = COPIED.get(said, said)
        pattern = re.escape(path).replace(r"\*", "[^/]+") + "$"
        matching = [each for each in found if re.match(pattern, each)]
        assert matching, f"{path} is in no package"
        for each in matching:
            assert found[each] == (package, owner, mode), each
    # Nobody else may write any, and no program is anybody's but root's.
    assert not [
        path for path, (_, _, mode) in found.items() if int(mode, 8) & 0o22 and mode != "0777"
    ]
    assert {owner for _, owner, _ in found.values()} == {"root:root", "root:io-autotune"}
    outside = [path for path in found if not re.match(r"/(etc/io-autotune|usr)/", path)]
    assert not outside, "packages write elsewhere"


def test_what_is_installed_works(here: Site) -> None:
    said = here.run(f"""
install {names("now")} slurm-client munge man-db bash-completion
io-autotuned --version
io-autotune --version
/usr/libexec/io-autotune/io-autotune-node --version
/usr/libexec/io-autotune/io-autotune-collector --version
runuser -u io-autotune -- io-autotuned --check && echo configuration right
io-autotune-report --help | head -n 1
runuser -u io-autotune-report -- /usr/lib/io-autotune/report/bin/python3 -c '
import sys, numpy, scipy.stats, sklearn.ensemble, pandas, psycopg, msgspec, jinja2
assert sys.prefix == "/usr/lib/io-autotune/report", sys.prefix
x = numpy.arange(20.0).reshape(-1, 1)
forest = sklearn.ensemble.RandomForestRegressor(5, random_state=1).fit(x, x[:, 0])
print("fitted", forest.score(x, x[:, 0]) > 0.5, psycopg.pq.version() > 0)'
find /usr/lib/io-autotune/report -name '*.pyc' | head -n 1 | grep --count pyc
bash -c '. /usr/share/bash-completion/completions/io-autotune; complete -p io-autotune'
ls /usr/share/man/man1/io-autotune.1.gz /usr/share/man/man8/io-autotuned.8.gz
units=/usr/lib/systemd/system
for page in $(sed -n 's|^Documentation=file://||p' $units/io-autotune*); do test -s "$page"; done
mkdir -p /etc/slurm
printf '%s\\n' ClusterName=mycluster SlurmctldHost=localhost PlugStackConfig=/etc/slurm/p.conf \\
    >/etc/slurm/slurm.conf
cp /usr/share/io-autotune/slurm/plugstack.conf /etc/slurm/p.conf
sbatch --help 2>&1 | grep -e io-autotune
sed -i 's/io_autotune.so.*/io_autotune_stub.so/' /etc/slurm/p.conf
sbatch --help 2>&1 | grep -e io-autotune
""")
    versions = re.findall(r"^io-autotune\S* (\S+)$", said, re.MULTILINE)
    assert versions == [released((TREE / "Cargo.toml").read_text(encoding="utf-8"))] * 4, said
    assert "configuration right" in said
    assert "usage: io-autotune-report" in said
    assert "fitted True True" in said
    assert "complete " in said
    assert said.count("--io-autotune") == 2, said
    assert "no longer tuned here" in said


def test_installing_starts_and_enables_nothing(here: Site) -> None:
    said = here.run(f"""
systemd_seems_to_run
install {names("now")}
sort -u /tmp/asked
echo ENABLED
find /etc/systemd/system -type l -name 'io-autotune*'
grep --recursive --files-with-matches --no-messages io_autotune /etc/slurm || true
""")
    asked, enabled = said.split("ENABLED\n")
    assert "daemon-reload" in asked
    assert not enabled
    assert not [line for line in asked.splitlines() if "io-autotune" in line], asked


def test_an_upgrade_restarts_what_runs_and_nothing_else(here: Site) -> None:
    said = here.run(f"""
install {names("now")}
systemd_seems_to_run
install {names("later")}
cat /tmp/asked
""")
    about = [line for line in said.splitlines() if "io-autotune" in line]
    restarts = {line.split()[-1] for line in about if "try-restart" in line}
    assert restarts == {"io-autotuned.service", "io-autotune-collector.service"}, said
    rest = [line for line in about if "try-restart" not in line]
    # deb-systemd-invoke asks what a unit is like before it acts.
    assert not [
        line for line in rest if re.search(r"\b(stop|start|restart|enable|mask)\b", line)
    ], said
    assert "daemon-reload" in said


def test_an_upgrade_leaves_configuration_and_what_waits(here: Site) -> None:
    said = here.run(f"""
install {names("now", SMALL)}
cp /etc/io-autotune/client.toml /tmp/default
echo '# mine' >>/etc/io-autotune/client.toml
echo '# mine' >>/etc/io-autotune/service.toml
chmod 0600 /etc/io-autotune/service.toml
echo 'mine' >/etc/io-autotune/accelerators.d/mine.toml
rm /etc/io-autotune/accelerators.d/scr.toml
mkdir -p /var/spool/io-autotune/reports /var/spool/io-autotune-jobcomp
echo report >/var/spool/io-autotune/reports/1.json
echo line >/var/spool/io-autotune-jobcomp/outcomes-20261101
chmod 2750 /var/spool/io-autotune-jobcomp
find /var/spool/io-autotune* /etc/io-autotune -printf '%p %u:%g %m %s\\n' | sort >/tmp/before
install -o Dpkg::Options::=--force-confold {names("later", SMALL)}
find /var/spool/io-autotune* /etc/io-autotune -printf '%p %u:%g %m %s\\n' | sort >/tmp/after
diff /tmp/before /tmp/after || true
dpkg-query --show --showformat '${{Version}}\\n' io-autotune-node
tail -n 1 /etc/io-autotune/client.toml
""")
    assert LATER in said
    changed = [line for line in said.splitlines() if line[:1] in "<>"]
    assert [line.split()[1] for line in changed] == ["/etc/io-autotune/client.toml.dpkg-dist"], said
    assert said.splitlines()[-1] == "# mine"


def test_untouched_configuration_is_renewed(here: Site) -> None:
    said = here.run(f"""
install {names("now", SMALL[:1])}
install {names("later", SMALL[:1])}
tail -n 1 /etc/io-autotune/client.toml
""")
    assert said.splitlines()[-1] == "# later"


def test_a_downgrade_is_refused(here: Site) -> None:
    said = here.run(f"""
install {names("later")}
for package in {" ".join(PACKAGES)}; do
    if dpkg --install /now/$package.deb >/tmp/said 2>&1; then echo "$package went back"; fi
    grep --max-count=1 refused /tmp/said
done
dpkg-query --show --showformat '${{Package}} ${{Version}} ${{db:Status-Abbrev}}\\n' \\
    'io-autotune*' 'slurm-spank-io*'
dpkg --audit
""")
    assert "went back" not in said
    assert said.count("refused") == len(PACKAGES)
    assert len(re.findall(rf"{re.escape(LATER)} ii ", said)) == len(PACKAGES), said
    assert all(f"{package}: " in said for package in PACKAGES)


def test_removal_keeps_configuration_and_purge_leaves_no_trace(here: Site) -> None:
    said = here.run(f"""
# What they depend on is there before.
ELSE='/(proc|sys|dev|tmp|now|later|var/(log|cache/(apt|debconf|ldconfig|man)|lib/(apt|dpkg)))'
install {names("now")}
dpkg --purge {" ".join(PACKAGES)} >/dev/null 2>&1
everything() {{
    find / -xdev -regextype posix-extended \\
        -regex "$ELSE" -prune -o -print | sort
    dpkg-statoverride --list || true
    dpkg-divert --list
}}
everything >/tmp/before
install {names("now")}
cd /var
mkdir -p /run/io-autotune spool/io-autotune cache/io-autotune-report
mkdir -p lib/io-autotune-collector lib/io-autotune-report
touch /var/spool/io-autotune/report.json /var/lib/io-autotune-report/state
dpkg --remove {" ".join(PACKAGES)} >/dev/null 2>&1
ls /etc/io-autotune/*.toml /var/spool/io-autotune/report.json /var/lib/io-autotune-report/state
find /usr -path '*io-autotune*' ! -path '/usr/share/doc/*'
dpkg --purge {" ".join(PACKAGES)} >/dev/null 2>&1
everything >/tmp/after
echo DIFFERENT
diff /tmp/before /tmp/after || true
echo ACCOUNTS
getent passwd | grep io-autotune
""")
    kept, rest = said.split("DIFFERENT\n")
    different, accounts = rest.split("ACCOUNTS\n")
    assert kept.split() == [
        "/etc/io-autotune/client.toml",
        "/etc/io-autotune/node.toml",
        "/etc/io-autotune/report.toml",
        "/etc/io-autotune/service.toml",
        "/var/lib/io-autotune-report/state",
        "/var/spool/io-autotune/report.json",
    ]
    assert not different
    # Files elsewhere may be theirs: docs/packages.md says how to remove them.
    assert {line.split(":")[0] for line in accounts.splitlines()} == ACCOUNTS
    assert all(line.endswith("/nologin") for line in accounts.splitlines())


def test_a_purge_does_not_go_through_mounts(here: Site) -> None:
    said = here.run(f"""
install {names("now", ["io-autotune-common", "io-autotune-node"])}
mkdir -p /var/spool/io-autotune/7/mount /project
echo theirs >/project/file
mount --bind /project /var/spool/io-autotune/7/mount
dpkg --purge io-autotune-node 2>&1 | grep stays
cat /project/file
""")
    assert "mounted below /var/spool/io-autotune, which therefore stays" in said
    assert said.splitlines()[-1] == "theirs"


def test_accounts_of_the_site_stay_and_a_uid_can_be_chosen(here: Site) -> None:
    mine = names("now", ["io-autotune-common", "io-autotune-service"])
    said = here.run(f"""
mkdir -p /etc/sysusers.d
echo 'u io-autotune 641 "the tuner"' >/etc/sysusers.d/io-autotune-service.conf
install {mine}
id -u io-autotune
stat --format=%G /etc/io-autotune/service.toml
""")
    assert said.split() == ["641", "io-autotune"]
    said = here.run(f"""
install {mine.split()[0]} passwd
useradd --system --no-create-home --shell /bin/false --uid 642 io-autotune
install {mine}
getent passwd io-autotune
""")
    assert said.split(":")[2] == "642"
    assert said.strip().endswith("/bin/false")


def test_a_removal_says_what_it_leaves(here: Site) -> None:
    said = here.run(f"""
install {names("now", [*PACKAGES[:1], "io-autotune-node", "slurm-spank-io-autotune"])}
mkdir -p /var/spool/io-autotune/saved/mycluster/node1 /etc/slurm
touch /var/spool/io-autotune/saved/mycluster/node1/7.json
cp /usr/share/io-autotune/slurm/plugstack.conf /etc/slurm/plugstack.conf
dpkg --remove slurm-spank-io-autotune io-autotune-node 2>&1
""")
    assert "plugstack.conf still names io_autotune.so" in said
    assert "restore --all" in said


@pytest.mark.parametrize("package", ["slurm-spank-io-autotune", "slurm-spank-io-autotune-stub"])
def test_the_plugin_wants_the_libslurm_that_it_was_built_for(here: Site, package: str) -> None:
    said = here.run(f"""
dpkg-deb --field /now/{package}.deb Depends
apt-cache madison slurmctld | head -n 1
install {names("now", SMALL)}
dpkg-query --show --showformat '${{Package}} ${{Version}}\\n' 'libslurm[0-9]*' | grep ' [0-9]'
""")
    depends, offered, installed = said.strip().splitlines()
    library, version = installed.split()
    series = ".".join(version.split(".")[:2])
    assert f"{library.split(':')[0]} (>= {series})" in depends
    assert f"{library.split(':')[0]} (<< " in depends
    assert f" {series}." in offered
