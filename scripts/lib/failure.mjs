/** An error that the user can act on: shown as it is, without a stack. */
export class Failure extends Error {
  /**
   * @param {string} message
   * @param {string} [output] the failed command's output
   */
  constructor(message, output = '') {
    super(message);
    this.name = 'Failure';
    this.output = output;
  }
}

/**
 * Prints why a script ends.
 * @param {unknown} error
 */
export function explain(error) {
  if (!(error instanceof Error)) console.error(error);
  else if (error instanceof Failure || error.name === 'LocalServerError') {
    const output = error instanceof Failure ? error.output.trimEnd() : '';
    if (output !== '') console.error(output);
    console.error(`\nError: ${error.message}`);
  } else console.error(error.stack);
}
