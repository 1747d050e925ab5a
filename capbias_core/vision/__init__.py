"""The image side: people and objects found, masked, captioned again, judged.

torch is imported inside functions, or in files that only workers import.
"""
