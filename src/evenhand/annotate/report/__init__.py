"""What people said: agreement, a metric against people, ratings of methods."""
