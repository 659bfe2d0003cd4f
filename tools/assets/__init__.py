"""What builds the embedded assets, the generated pages and the pictures; never part of the wheel."""
