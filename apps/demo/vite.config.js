import { defaultClientConditions, defineConfig } from 'vite';

export default defineConfig(({ command }) => {
  // Under the NODE_ENV of a test, the bundle would contain React's checks for development.
  if (command === 'build') process.env.NODE_ENV = 'production';
  return {
    base: '/demo/',
    // The packages come from their sources, so that the page can be built without any other build.
    resolve: { conditions: ['source', ...defaultClientConditions] },
    // Emits everything as separate files: the page's content security policy forbids inline code.
    build: {
      target: 'es2022',
      cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      // Files of libraries begin with "use client", which concerns frameworks that render on a server.
      rolldownOptions: {
        onLog: (level, log, handle) => {
          if (log.code !== 'MODULE_LEVEL_DIRECTIVE') handle(level, log);
        },
      },
    },
  };
});
