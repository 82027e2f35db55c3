"""Measured speed. Run by hand; prints, asserts nothing about time: compare what was measured in the same run.

* `python -m tests.benchmarks.bench_page`: the app in a browser and under reruns, beside the least Streamlit can do;
* `python -m tests.benchmarks.bench_slow`: the same on a slow phone and a thin line;
* `python -m tests.benchmarks.bench_states`: the states of every lab that cost most processor time and memory;
* `python -m tests.benchmarks.bench_maps`: what a map costs, and what it costs others while it fills in;
* `python -m tests.benchmarks.bench_sweep`: a sweep in batches beside a loop over its scales.
"""
