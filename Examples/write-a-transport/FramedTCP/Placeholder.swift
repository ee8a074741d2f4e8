// Placeholder until the example lands.
