"""What a site installs: packages, built in clean roots by ``make packages``, and their tests."""
