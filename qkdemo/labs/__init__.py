"""One question about attention per module: settings in, a frozen result out."""
