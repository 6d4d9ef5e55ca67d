import { describe, expect, test } from '@jest/globals';
import { answers, hangs, Simulation, type Receiver } from './schedule-simulation.testkit.js';

const quantile = (values: number[], share: number) => values[Math.ceil(values.length * share) - 1] ?? NaN;

const WARM_MS = 10_000;
const MEASURED_MS = 200_000;

/** Measures another tenant's deliveries, first alone and then beside the hostile load. */
function measure(environments: number, hostile: (simulation: Simulation, environmentId: string) => void) {
  const simulation = new Simulation();
  const ids = { failing: [] as string[], fresh: [] as string[] };
  simulation.addEndpoint('proven', 'B', answers(10), 20);
  simulation.every(300, () => simulation.emit('proven'));
  // Responds to the first attempt with an immediate 503, and to later ones with 200.
  const failsOnce: Receiver = (_nowMs, attempt) => ({ ms: 5, status: attempt === 1 ? 503 : 200 });
  const add = (kind: keyof typeof ids, receiver: Receiver, slotMs: number | null) => () => {
    const id = `${kind}${ids[kind].length}`;
    simulation.addEndpoint(id, 'B', receiver, slotMs);
    ids[kind].push(id);
    simulation.emit(id);
  };
  simulation.runUntil(WARM_MS);
  for (let n = 0; n < environments; n += 1) hostile(simulation, `hostile${n}`);
  simulation.every(15_000, add('fresh', answers(10), null));
  simulation.every(10_000, add('failing', failsOnce, 20));
  simulation.runUntil(WARM_MS + MEASURED_MS);
  const all = (some: string[], kind: 'first' | 'retry') =>
    some.flatMap((id) => simulation.lags(id, kind)).sort((one, other) => one - other);
  return {
    proven: simulation.lags('proven', 'first'),
    retries: all(ids.failing, 'retry'),
    fresh: all(ids.fresh, 'first'),
    hostileStarted: simulation.started.filter(({ endpointId }) => endpointId.startsWith('hostile')).length,
  };
}

const fiftyHanging = (simulation: Simulation, environmentId: string) => {
  for (let n = 0; n < 50; n += 1) {
    simulation.addEndpoint(`${environmentId}/${n}`, environmentId, hangs);
    simulation.emit(`${environmentId}/${n}`, 8);
    simulation.every(7000, () => simulation.emit(`${environmentId}/${n}`));
  }
};
const oneSlow = (simulation: Simulation, environmentId: string) => {
  simulation.addEndpoint(`${environmentId}/slow`, environmentId, answers(1800), 20);
  simulation.emit(`${environmentId}/slow`, 400);
};
describe.each([1, 10, 100])('beside %i hostile environments', (environments) => {
  test.each([
    ['50 hanging endpoints each', fiftyHanging],
    ['one endpoint with 400 deliveries that answers after 1.8 s each', oneSlow],
    ['both', (simulation: Simulation, id: string) => [fiftyHanging, oneSlow].forEach((load) => load(simulation, id))],
  ])('with %s, the delays of another tenant stay within their goals', (_name, hostile) => {
    const { proven, retries, fresh, hostileStarted } = measure(environments, hostile);
    expect(proven.length).toBeGreaterThan(600);
    expect(quantile(proven, 0.95)).toBeLessThan(2000);
    expect(retries.length).toBeGreaterThan(15);
    expect(quantile(retries, 1)).toBeLessThan(10_000);
    expect(fresh.length).toBeGreaterThan(10);
    expect(quantile(fresh, 1)).toBeLessThan(15_000);
    // The hostile endpoints are not starved either: they get two slots of 10 s, or the three of slow endpoints.
    expect(hostileStarted).toBeGreaterThan(35);
  });
});

test.each([1, 10, 100])(
  'endpoints of a tenant that adds two every five seconds get their first delivery in time beside %i hostile environments',
  (environments) => {
    // The slots of hanging endpoints become free every 10 s, and the endpoints are added at different times before that.
    for (const startsAtMs of [10_740, 15_180]) {
      const simulation = new Simulation();
      for (let n = 0; n < environments; n += 1) fiftyHanging(simulation, `hostile${n}`);
      simulation.runUntil(startsAtMs);
      const ids = Array.from({ length: 20 }, (_, n) => `new${n}`);
      for (const [n, id] of ids.entries()) {
        simulation.addEndpoint(id, 'B', answers(10, n % 2 === 0 ? 200 : 503));
        simulation.at(startsAtMs + Math.floor(n / 2) * 5000, () => simulation.emit(id));
      }
      simulation.runUntil(startsAtMs + 80_000);
      const lags = ids.flatMap((id) => simulation.lags(id, 'first'));
      expect(lags).toHaveLength(ids.length);
      expect(Math.max(...lags)).toBeLessThan(15_000);
    }
  },
);

test('a quick endpoint that starts to hang does not delay another tenant', () => {
  const { proven } = measure(1, (simulation, environmentId) => {
    const hangsLater: Receiver = (nowMs) => (nowMs < WARM_MS + 20_000 ? { ms: 50, status: 200 } : null);
    simulation.addEndpoint('turns', environmentId, hangsLater, 20);
    simulation.emit('turns', 5000);
  });
  expect(quantile(proven, 1)).toBeLessThan(2000);
});

test('ten quick endpoints of one environment that start to hang together do not delay another tenant', () => {
  const { proven } = measure(1, (simulation, environmentId) => {
    const hangsLater: Receiver = (nowMs) => (nowMs < WARM_MS + 20_000 ? { ms: 50, status: 200 } : null);
    for (let n = 0; n < 10; n += 1) {
      simulation.addEndpoint(`turns${n}`, environmentId, hangsLater, 20);
      simulation.emit(`turns${n}`, 5000);
    }
  });
  expect(quantile(proven, 1)).toBeLessThan(2000);
});
