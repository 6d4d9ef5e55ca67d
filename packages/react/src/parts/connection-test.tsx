'use client';
import { type ConnectionTestOptions, type ConnectionTestStep, testConnection } from '@callplane/client-js';
import { useEffect, useRef, useState } from 'react';
import { readable, useTexts } from '../texts.js';

/** Where to connect: the gateway, and a token or the ICE servers. */
export type ConnectionToTest = Pick<ConnectionTestOptions, 'url' | 'token' | 'iceServers'>;

interface ConnectionTestProps {
  /** Called at each press of the button. */
  connection: () => Promise<ConnectionToTest> | ConnectionToTest;
}

const SIGNS = { passed: '✓', failed: '✗', skipped: '–' } as const;

/** A button that tests the connection without joining, and what it found, step by step. */
export function ConnectionTest({ connection }: ConnectionTestProps) {
  const texts = useTexts();
  const [steps, setSteps] = useState<readonly ConnectionTestStep[]>([]);
  const [summary, setSummary] = useState('');
  const running = useRef<AbortController>(undefined);
  const [isRunning, setRunning] = useState(false);
  useEffect(() => () => running.current?.abort(), []);
  const run = async () => {
    const { signal } = (running.current = new AbortController());
    setRunning(true);
    setSteps([]);
    setSummary(texts.testing);
    try {
      const onStep = (step: ConnectionTestStep) => setSteps((before) => [...before, step]);
      const tested = await testConnection({ ...(await connection()), onStep, signal });
      setSteps(tested.steps);
      setSummary(tested.isUsable ? texts.testPassed : texts.testFailed);
    } catch (error) {
      setSummary(readable(texts, error));
    }
    setRunning(false);
  };
  return (
    <div className="cp-fields cp-test">
      <button type="button" className="cp-button" disabled={isRunning} onClick={() => void run()}>
        {texts.connectionTest}
      </button>
      <p role="status">{summary}</p>
      {steps.length > 0 && (
        <ul>
          {steps.map((step) => (
            <li key={step.name} data-outcome={step.outcome}>
              <span className="cp-sign" aria-hidden="true">
                {SIGNS[step.outcome]}
              </span>
              <span>{texts.testStep(step)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
