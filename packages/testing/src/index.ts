/**
 * Real servers and apps for tests. Everything that is started here belongs to the test file and is stopped with it,
 * also when its tests fail or Jest is killed.
 */
export { eventually, type Patience } from './eventually.js';
export { stopAtEnd, superviseProcess, forgetProcess } from './resources.js';
export {
  createRtcPeer,
  type RtcCandidate,
  type RtcPeer,
  type RtcPeerOptions,
  type RtcReceived,
  type RtcTrack,
} from './rtc-peer.js';
export { repositoryRoot } from './repository-root.js';
export {
  spawnApp,
  TEST_ENCRYPTION_KEYS,
  type AppExit,
  type LogLine,
  type TestApp,
  type TestAppOptions,
} from './test-app.js';
export { testClock, type TestClock } from './test-clock.js';
export { inviteTestParticipant, type TestParticipant } from './test-participant.js';
export { createTestTenant, type TestTenant } from './test-tenant.js';
export { createTestDatabase, type TestDatabase } from './test-database.js';
export {
  startTestCoturn,
  startTestJanus,
  startTestPostgres,
  startTestPrometheus,
  startTestRedis,
  temporaryDirectory,
  type TestJanus,
  type TestPostgres,
  type TestServer,
} from './test-servers.js';
