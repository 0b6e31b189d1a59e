// node ag-ui.mjs http://127.0.0.1:8080
import { HttpAgent } from '@ag-ui/client';

const agent = new HttpAgent({ url: `${process.argv[2]}/api/v1/agent/ag-ui/assistant`, threadId: `ag-${Date.now()}` });
agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: 'Arrange a review meeting for tomorrow' });
let resume;
do {
  let asked = [];
  await agent.runAgent({ ...(resume && { resume }) }, {
    onTextMessageContentEvent: ({ event }) => { process.stdout.write(event.delta); },
    onToolCallResultEvent: ({ event }) => { console.log('->', event.content); },
    onRunFinishedEvent: ({ event }) => { asked = event.outcome?.type === 'interrupt' ? event.outcome.interrupts : []; },
    onRunErrorEvent: ({ event }) => { console.error('failed:', event.message); },
  });
  for (const { message } of asked) console.log('?', message);
  resume = asked.map(({ id, reason }) => ({ interruptId: id, status: 'resolved', payload: reason === 'tool_call' ? { approved: true } : '1 hour' }));
} while (resume.length);
