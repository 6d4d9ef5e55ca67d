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
export { capture, packetBytes, pictureCapture, soundCapture, vp8, type TestPacket } from './captures.js';
export { colorAt, medianOffset, offsetsOf } from './flashes.js';
export { newCertificate, type TestCertificate } from './certificate.js';
export { eventually, testClock, type TestClock } from './eventually.js';
export { deliveryRow, participantRow, roomRow, sessionRow } from './literals.js';
export { startMediaAgent } from './media-agent.js';
export { startTestPgBouncer } from './pgbouncer.js';
export { startNginx, startTestNginx, type TestNginx } from './nginx.js';
export { repositoryRoot, stopAtEnd } from './resources.js';
export { freezeVideoRoom } from './frozen-videoroom.js';
export { createRawPeer, type RawPeer } from './raw-peer/raw-peer.js';
export { STUN, type StunAttribute } from './raw-peer/stun.js';
export { createRtcPeer, type RtcAudioTrack, type RtcPeer, type RtcTrack } from './rtc-peer.js';
export { breakRedis, REDIS_FAULTS, setUsers } from './redis-faults.js';
export { appMain, spawnApp, TEST_ENCRYPTION_KEYS, type LogLine, type TestApp } from './test-app.js';
export {
  createTestTenant,
  disconnectOne,
  endOne,
  execute,
  insertTestEndpoint,
  insertTestParticipant,
  inviteTestParticipant,
  joinOne,
  resumeOne,
  updateMetadataOf,
  type TestTenant,
} from './rows.js';
export { listenUntilEnd, rawExchange, startTcpProxy } from './sockets.js';
export { workerServers } from './worker-servers.js';
export { copyPostgres } from './postgres-copy.js';
export { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from './otlp-receiver.js';
export {
  createTestDatabase,
  gatewayUrlOf,
  PATIENT_DEADLINES,
  PATIENT_REDIS,
  type TestDatabase,
} from './test-database.js';
export {
  hasMediaRoom,
  startTestCoturn,
  startTestJanus,
  startTestPostgres,
  startTestStandby,
  temporaryDirectory,
  testServer,
  type TestCoturn,
  type TestJanus,
  type TestPostgres,
  type TestServer,
} from './test-servers.js';
export { overRedis, connectToTestRedis, startTestRedis, startTestSentinels } from './test-redis.js';
export { S3_PROGRAM, S3_SKIPPED, startTestS3, type TestS3 } from './s3.js';
export { openTurnClient, relaysByUser, turnCredential, type TurnClientOptions } from './turn-client.js';
export { randomFrom, startUdpShaper, type UdpShaper } from './udp-shaper.js';
