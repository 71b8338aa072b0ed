"""The contract of both sides: values, wire models and the pure rules that must agree."""
