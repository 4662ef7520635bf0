"""The dashboard, for `streamlit run app.py` in a checkout; `rail app` needs no checkout."""

from toolkit.dashboard.pages.main import main

main()
