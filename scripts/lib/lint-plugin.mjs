/**
 * The one rule that oxlint cannot express: code that reads the clock with `new Date()` escapes the clock that is passed
 * in, so its tests would depend on the time of day. `no-restricted-properties` forbids the other forms.
 */
/** @typedef {{ report(problem: { node: unknown, message: string }): void }} RuleContext */

const ambientTime = {
  /** @param {RuleContext} context */
  create: (context) => ({
    /** @param {unknown} node */
    "NewExpression[callee.name='Date'][arguments.length=0]": (node) => {
      context.report({ node, message: 'Take the time from the clock that is passed in.' });
    },
  }),
};

export default { meta: { name: 'callplane' }, rules: { 'ambient-time': ambientTime } };
