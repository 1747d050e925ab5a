"""The image side: people and objects are detected, masked, captioned again, and judged.

torch is imported inside functions, or in files that only workers import.
"""
