"""What a site installs: Debian packages and RPMs, built in clean roots (``make packages``), and their tests."""
