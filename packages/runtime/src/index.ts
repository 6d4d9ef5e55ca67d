export * from './config/common-settings.js';
export * from './config/environment.js';
export * from './health/health.js';
export * from './lifecycle/lifecycle.js';
export * from './logging/logger.js';
export * from './metrics/metrics.js';
export * from './repeating/repeating.js';
export { redactText } from './logging/redact.js';
export { systemClock } from './clock.js';
