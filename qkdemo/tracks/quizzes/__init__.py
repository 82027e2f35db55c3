"""The questions of each track, by name: functions that draw parameters and run a lab."""
