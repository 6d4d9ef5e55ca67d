import { defaultClientConditions, defineConfig } from 'vite';

const api = process.env.CONSOLE_API_URL ?? 'http://127.0.0.1:3000';

export default defineConfig(({ command }) => {
  // Under the NODE_ENV of a test, the bundle would contain React's checks for development, which double its size.
  if (command === 'build') process.env.NODE_ENV = 'production';
  return {
    base: '/console/',
    // The SDKs come from their sources, so that the console can be built without any other build.
    resolve: { conditions: ['source', ...defaultClientConditions] },
    // Emits everything as separate files: the page's content security policy forbids inline code and styles.
    build: {
      target: 'es2022',
      cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
      assetsInlineLimit: 0,
      // The licences of the libraries in the bundle ask for their texts beside it.
      license: { fileName: 'licences.txt' },
      modulePreload: { polyfill: false },
      // Measured by a test, and 0.3 s of each build.
      reportCompressedSize: false,
      // Files of libraries begin with "use client", which concerns frameworks that render on a server.
      rolldownOptions: {
        onLog: (level, log, handle) => {
          if (log.code !== 'MODULE_LEVEL_DIRECTIVE') handle(level, log);
        },
      },
    },
    server: { proxy: { '/v1': { target: api, changeOrigin: true, ws: true } } },
  };
});
