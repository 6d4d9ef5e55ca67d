/**
 * Real servers and apps for tests. Each belongs to the test file that starts it and stops with the file, even if its
 * tests fail or Jest is killed.
 */
export * from './browser.js';
export * from './captures.js';
export * from './flashes.js';
export * from './certificate.js';
export * from './eventually.js';
export * from './literals.js';
export * from './media-agent.js';
export * from './pgbouncer.js';
export * from './nginx.js';
export * from './resources.js';
export * from './frozen-videoroom.js';
export * from './raw-peer/raw-peer.js';
export * from './raw-peer/stun.js';
export * from './rtc-peer.js';
export * from './redis-faults.js';
export * from './test-app.js';
export * from './rows.js';
export * from './small-disk.js';
export * from './sockets.js';
export * from './worker-servers.js';
export * from './postgres-copy.js';
export * from './otlp-receiver.js';
export * from './test-database.js';
export * from './test-servers.js';
export * from './test-redis.js';
export * from './s3.js';
export * from './turn-client.js';
export * from './udp-shaper.js';
