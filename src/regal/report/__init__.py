"""Make plans visible: traces and pages."""
