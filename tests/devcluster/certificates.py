"""An authority and its certificates."""

from __future__ import annotations

from pathlib import Path

from devcluster import accounts, command, files

NOW_AND_TOMORROW: tuple[str, ...] = ("-days", "1")
OVER = ("-startdate", "20200101000000Z", "-enddate", "20210101000000Z")
"""Of a certificate that has run out."""

CONFIGURATION = """\
[ca]
default_ca = site
[site]
database = {index}
new_certs_dir = {directory}
certificate = {certificate}
private_key = {key}
default_md = sha256
policy = any
rand_serial = yes
unique_subject = no
[any]
commonName = supplied
"""


class Authority:
    """Makes certificates, by the program ``openssl``."""

    def __init__(self, directory: Path, name: str, owner: str) -> None:
        """Have an authority of this name; what it makes is for this user's programs."""
        self._directory = directory
        self._account = accounts.find(owner)
        key = directory / f"{name}.key"
        self.certificate = directory / f"{name}.crt"
        self._openssl(
            *("req", "-x509", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
            *_new_key(key),
            *("-out", str(self.certificate)),
        )
        self._own(self.certificate)
        index = directory / f"{name}.index"
        index.touch()
        self._configuration = directory / f"{name}.cnf"
        text = CONFIGURATION.format(
            index=index, directory=directory, certificate=self.certificate, key=key
        )
        self._configuration.write_text(text, encoding="utf-8")

    def certify(
        self, name: str, *more: str, valid: tuple[str, ...] = NOW_AND_TOMORROW
    ) -> tuple[Path, Path]:
        """Return a certificate for a name, and its key; ``more``: extensions."""
        stem = self._directory / f"{self.certificate.stem}-{name}"
        key, request, made = (stem.with_suffix(suffix) for suffix in (".key", ".csr", ".crt"))
        asking = ("req", "-new", "-nodes", "-subj", f"/CN={name}")
        self._openssl(*asking, *_new_key(key), "-out", str(request))
        extensions = stem.with_suffix(".ext")
        extensions.write_text("".join(f"{line}\n" for line in ("basicConstraints=CA:FALSE", *more)))
        self._openssl(
            *("ca", "-batch", "-notext", "-config", str(self._configuration), *valid),
            *("-extfile", str(extensions), "-in", str(request), "-out", str(made)),
        )
        self._own(key)
        self._own(made)
        return made, key

    def _openssl(self, *arguments: str) -> None:
        command.run([command.find("openssl", "test"), *arguments])

    def _own(self, path: Path) -> None:
        files.own(path, 0o600, self._account.uid, self._account.gid)


def _new_key(path: Path) -> tuple[str, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", str(path))
