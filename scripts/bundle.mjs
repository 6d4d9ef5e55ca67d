import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { build, defaultServerConditions } from 'vite';

/**
 * `node ../../scripts/bundle.mjs` in the folder of an app: replaces the compiled dist/main.js by the app and its
 * libraries in a few files. Node needs a millisecond of processor time for each file that it loads, and an app has 1500.
 */

/** Libraries that are loaded only where a setting asks for them, so they stay apart. */
const LATE = /@(aws-(sdk|crypto)|smithy|opentelemetry\/(?!api\/))|bowser|query_compiler/;
const isLibrary = (/** @type {string} */ id) => id.includes('node_modules');
const isOwn = (/** @type {string} */ id) => isAbsolute(id) && !isLibrary(id);

rmSync(join('dist', 'chunks'), { recursive: true, force: true });
const built = /** @type {import('vite').Rolldown.RolldownOutput} */ (
  await build({
    configFile: false,
    logLevel: 'error',
    publicDir: false,
    build: {
      ssr: true,
      outDir: 'dist',
      emptyOutDir: false,
      target: 'node20',
      minify: false,
      sourcemap: true,
      reportCompressedSize: false,
      rolldownOptions: {
        input: { main: join('src', 'main.ts') },
        // Tree shaking removes `decodeURIComponent(path)`, which the API calls because it may throw.
        treeshake: false,
        output: {
          format: 'es',
          // V8 holds a text with other characters at twice its size, and the text of an app has 4 MB.
          charset: 'ascii',
          // Stack traces need positions only, and Node reads the whole map.
          sourcemapExcludeSources: true,
          entryFileNames: '[name].js',
          chunkFileNames: join('chunks', '[name].js'),
          minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
          codeSplitting: { groups: [{ name: 'libraries', test: (id) => isLibrary(id) && !LATE.test(id) }] },
        },
      },
    },
    ssr: {
      target: 'node',
      noExternal: true,
      // Both have native code, which no bundle can hold. msgpackr works without it.
      external: ['@roamhq/wrtc', 'msgpackr-extract'],
      resolve: { conditions: ['source', ...defaultServerConditions] },
    },
  })
);

// Node reads each map when it loads the file. The ones of libraries would take 15 MiB in each process.
for (const file of built.output) {
  if (file.type !== 'chunk' || file.moduleIds.some(isOwn)) continue;
  const path = join('dist', file.fileName);
  writeFileSync(path, readFileSync(path, 'utf8').replace(/\n\/\/# sourceMappingURL=.*\n?$/, '\n'));
  rmSync(`${path}.map`, { force: true });
}
