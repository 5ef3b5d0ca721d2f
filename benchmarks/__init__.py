"""What is claimed about speed, as ratios measured in one run. ``make bench`` prints the tables."""
