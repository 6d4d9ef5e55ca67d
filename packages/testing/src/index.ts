/**
 * Real servers and apps for tests. Each belongs to the test file that starts it and stops with the file, even if its
 * tests fail or Jest is killed.
 */
export {
  askPage,
  AUTOPLAY,
  BROWSER_PROGRAM,
  CHROMIUM_ARGUMENTS,
  servePage,
  serveScripts,
  type Ask,
  type Site,
} from './browser.js';
export { eventually } from './eventually.js';
export { stopAtEnd } from './resources.js';
export { createRtcPeer, type RtcAudioTrack, type RtcPeer, type RtcTrack } from './rtc-peer.js';
export { breakRedis, REDIS_FAULTS, sendToRedis } from './redis-faults.js';
export { repositoryRoot } from './repository-root.js';
export { appMain, spawnApp, TEST_ENCRYPTION_KEYS, type LogLine, type TestApp } from './test-app.js';
export { testClock, type TestClock } from './test-clock.js';
export { hasMediaRoom } from './media-rooms.js';
export { admitOne, disconnectOne, endOne, joinOne, resumeOne, updateMetadataOf } from './one-session.js';
export { insertTestEndpoint } from './test-endpoint.js';
export { insertTestParticipant, inviteTestParticipant } from './test-participant.js';
export { createTestTenant, type TestTenant } from './test-tenant.js';
export { workerServers } from './worker-servers.js';
export { copyPostgres } from './postgres-copy.js';
export { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from './otlp-receiver.js';
export { rawExchange } from './raw-exchange.js';
export { gatewayUrlOf } from './migrate.js';
export {
  connectionTo,
  createTestDatabase,
  PATIENT_DEADLINES,
  PATIENT_REDIS,
  type TestDatabase,
} from './test-database.js';
export {
  startTestCoturn,
  startTestJanus,
  startTestPgBouncer,
  startTestPostgres,
  startTestPrometheus,
  startTestStandby,
  temporaryDirectory,
  type TestCoturn,
  type TestJanus,
  type TestPostgres,
  type TestServer,
} from './test-servers.js';
export {
  overRedis,
  askTestRedis,
  connectToTestRedis,
  makeTestAuthority,
  startTestRedis,
  startTestSentinels,
  type TestSentinels,
} from './test-redis.js';
export { openTurnClient, type TurnClient, type TurnClientOptions } from './turn-client.js';
export { relaysByUser, turnCredential } from './turn-facts.js';
