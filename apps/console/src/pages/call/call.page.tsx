import { useState } from 'react';
import { Page } from '../../components/layout.js';
import { useQueryParameters } from '../../navigation/location.js';
import { useLive } from '../../stream/live.js';
import { JoinForm, type Admission } from './join-form.js';
import { RunningCall } from './running-call.js';

/** A call in a room of this environment, with a token that is made on the spot. */
export default function CallPage() {
  useLive(['rooms']);
  const [parameters] = useQueryParameters();
  const [admission, setAdmission] = useState<Admission>();
  const [ending, setEnding] = useState('');
  const leave = (why: string) => {
    setEnding(why);
    setAdmission(undefined);
  };
  return (
    <Page
      title="Call"
      up={{ to: '/developers', label: 'Developers' }}
      subtitle="Joins a room from this browser, with a token made on the spot."
    >
      {admission === undefined ? (
        <>
          {ending !== '' && (
            <p className="notice call-ending" role="status">
              {ending}
            </p>
          )}
          <JoinForm roomId={parameters.get('room') ?? ''} onAdmitted={setAdmission} />
        </>
      ) : (
        <RunningCall admission={admission} onEnd={leave} />
      )}
    </Page>
  );
}
