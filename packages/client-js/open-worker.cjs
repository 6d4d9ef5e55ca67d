'use strict';
// `open-worker.js` of the CommonJS form: only an ES module knows its own URL.
exports.openWorker = () => {
  throw new Error('Pass `encryption.worker` to connect(): the CommonJS form does not know the URL of the worker.');
};
