// The styles have no values.
export {};
