# Puts what a site installs below DESTDIR, for all packages: the Debian packages and the RPMs then share it out.
#
#   make -f deploy/packages/stage.mk DESTDIR=/somewhere PROGRAMS=dir PLUGIN=dir UNITS=dir PLUGINS=dir ZSH=dir
#
#   PROGRAMS   where io-autotuned, io-autotune, io-autotune-node and io-autotune-collector were built
#   PLUGIN     where io_autotune.so and io_autotune_stub.so were built
#   UNITS      where the distribution has systemd's units; PLUGINS: Slurm's plugins; ZSH: zsh's completions

INSTALL := install -p
LIBEXEC := $(DESTDIR)/usr/libexec/io-autotune
SHARE   := $(DESTDIR)/usr/share
DOC     := $(SHARE)/doc/io-autotune
PAGES   := $(filter-out docs/SUMMARY.md,$(wildcard docs/*.md))

.PHONY: all programs plugin configuration units texts
all: programs plugin configuration units texts

programs:
	$(INSTALL) -D -m 755 -t $(DESTDIR)/usr/sbin $(PROGRAMS)/io-autotuned
	$(INSTALL) -D -m 755 -t $(DESTDIR)/usr/bin $(PROGRAMS)/io-autotune
	$(INSTALL) -D -m 755 -t $(LIBEXEC) $(PROGRAMS)/io-autotune-node $(PROGRAMS)/io-autotune-collector \
	    deploy/jobcomp/io-autotune-jobcomp deploy/slurm/run-in-job $(wildcard deploy/commands/*)

plugin:
	$(INSTALL) -D -m 755 -t $(DESTDIR)$(PLUGINS) $(PLUGIN)/io_autotune.so $(PLUGIN)/io_autotune_stub.so

configuration:
	$(INSTALL) -D -m 644 -t $(DESTDIR)/etc/io-autotune deploy/etc/client.toml deploy/etc/node.toml deploy/etc/report.toml
	$(INSTALL) -m 640 -t $(DESTDIR)/etc/io-autotune deploy/etc/service.toml
	$(INSTALL) -D -m 644 -t $(DESTDIR)/etc/io-autotune/accelerators.d deploy/accelerators.d/*.toml

units:
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(UNITS) deploy/systemd/*
	$(INSTALL) -D -m 644 -t $(DESTDIR)/usr/lib/sysusers.d deploy/sysusers.d/*.conf

texts:
	$(INSTALL) -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/fish/vendor_completions.d $(DESTDIR)$(ZSH)
	$(PROGRAMS)/io-autotune admin man $(SHARE)/man/man1 >/dev/null
	$(PROGRAMS)/io-autotune admin completion bash > $(SHARE)/bash-completion/completions/io-autotune
	$(PROGRAMS)/io-autotune admin completion fish > $(SHARE)/fish/vendor_completions.d/io-autotune.fish
	$(PROGRAMS)/io-autotune admin completion zsh > $(DESTDIR)$(ZSH)/_io-autotune
	$(INSTALL) -d $(SHARE)/man/man8
	help2man --no-info --section=8 --name='the tuner service of io-autotune' --output=$(SHARE)/man/man8/io-autotuned.8 $(PROGRAMS)/io-autotuned
	chmod 644 $(SHARE)/man/man?/* $(SHARE)/bash-completion/completions/* $(SHARE)/fish/vendor_completions.d/* $(DESTDIR)$(ZSH)/*
	$(INSTALL) -D -m 644 -t $(SHARE)/io-autotune/sql deploy/sql/*.sql
	$(INSTALL) -D -m 644 -t $(SHARE)/io-autotune/prometheus deploy/prometheus/io-autotune.rules.yml deploy/prometheus/grafana-dashboard.json
	$(INSTALL) -D -m 644 -t $(SHARE)/io-autotune/slurm deploy/slurm/*.lua deploy/etc/applications.toml
	sed 's|/usr/lib/x86_64-linux-gnu/slurm-wlm/|$(PLUGINS)/|' deploy/etc/plugstack.conf > $(SHARE)/io-autotune/slurm/plugstack.conf
	chmod 644 $(SHARE)/io-autotune/slurm/plugstack.conf
	$(INSTALL) -D -m 644 -t $(DOC) README.md CHANGELOG.md SECURITY.md $(PAGES)
