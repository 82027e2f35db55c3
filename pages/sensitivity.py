"""The sensitivity page: final loss against learning rate, a curve per remedy, drawn as its runs finish."""

import streamlit as st

from qkdemo.strings import say
from qkdemo.training import rates
from qkdemo.web.controls import dials
from qkdemo.web.rates_page import curves, offer
from qkdemo.web.rates_runs import PREFIX, attend

settings = dials(rates.Settings, rates.PRESETS, PREFIX)
sweep = attend(settings)
if isinstance(sweep, str):
    st.title(say("page.sensitivity"))
    st.info(sweep)
    st.stop()
curves(sweep)
offer(sweep)
