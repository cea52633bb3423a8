"""The arithmetic: numbers in, numbers out. No torch, no Streamlit, no clock."""
