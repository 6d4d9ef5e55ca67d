/**
 * The fast-check of all tests (jest.config.js maps the name to this file). Every run of `npm test` tries the same cases,
 * so that a change fails because of itself and not by chance. `npm run test:full` tries new ones; its failures print
 * their seed, which belongs into the test as an example.
 */
// A package's own path, because the mapped name leads back here. environment.mjs has the function.
const file = new URL('../node_modules/fast-check/lib/fast-check.js', import.meta.url);
const { default: fc } = await globalThis['callplane.library'](file.href);

const SEED = 20_261_122;

if (process.env.CALLPLANE_TEST_TIER !== 'full') fc.configureGlobal({ seed: SEED });

export default fc;
