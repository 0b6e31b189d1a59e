import { HttpAgent } from '@ag-ui/client';
import { AssistantRuntimeProvider } from '@assistant-ui/react';
import { useAgUiInterrupts, useAgUiRuntime, useAgUiSubmitInterruptResponses } from '@assistant-ui/react-ag-ui';
import { useMemo, type ReactNode } from 'react';

export function Fermata({ children }: { children: ReactNode }) {
  const agent = useMemo(() => new HttpAgent({ url: '/api/v1/agent/ag-ui/assistant' }), []);
  const runtime = useAgUiRuntime({ agent });
  return <AssistantRuntimeProvider runtime={runtime}>{children}<Asked /></AssistantRuntimeProvider>;
}

// What waits for a person; put it beside the thread.
function Asked() {
  const interrupts = useAgUiInterrupts();
  const submit = useAgUiSubmitInterruptResponses();
  const say = (interruptId: string, payload: unknown) => submit([{ interruptId, status: 'resolved', payload }]);
  return interrupts.map(({ id, reason, message }) => (
    <p key={id}>
      {message}{' '}
      {reason === 'tool_call'
        ? <><button onClick={() => say(id, { approved: true })}>Approve</button><button onClick={() => say(id, { approved: false })}>Reject</button></>
        : <input onKeyDown={(event) => event.key === 'Enter' && say(id, event.currentTarget.value)} />}
    </p>
  ));
}
