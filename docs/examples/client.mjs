// node client.mjs http://127.0.0.1:8080
import { Fermata } from '@fermata/client';

const fermata = new Fermata({ url: process.argv[2] });
const { threadId } = await fermata.run({ text: 'Arrange a review meeting for tomorrow' });
const answered = new Set();
for await (const { messages, previews, interactions, run } of fermata.follow(threadId)) {
  console.log([...messages, ...previews].map(({ role, content }) => `${role}: ${content}`).at(-1));
  for (const { interactionId, type, binding } of interactions) {
    if (answered.has(interactionId)) continue;
    answered.add(interactionId);
    await fermata.answer(interactionId, type === 'confirm' ? { decision: 'approve', binding } : { choices: ['c2'] });
  }
  if (run && !['running', 'waiting'].includes(run.status)) break;
}
