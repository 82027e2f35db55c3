"""What is said of a file that somebody brought: findings, the worst first, and the tables behind them.

* `examine`: a file of any kind, from its bytes or a path; `finding`: what a finding and a report are;
* `of_tensors`, `of_checkpoint`, `of_logs`: what is found in each kind.
"""
