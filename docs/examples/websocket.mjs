// node websocket.mjs http://127.0.0.1:8080
import { WebSocket } from 'ws'; // in browsers, and in Node from 22 on, it is built in

const sessionId = `ws-${Date.now()}`;
const socket = new WebSocket(`${process.argv[2].replace('http', 'ws')}/api/v1/agent/ws`);
const say = (frame) => socket.send(JSON.stringify({ sessionId, ...frame }));
socket.onopen = () => {
  say({ type: 'subscribe', after: 0 }); // after a cut: the seq of the last event that was seen
  say({ type: 'message', content: 'Arrange a review meeting for tomorrow', runId: 'r1', id: 1 });
};
socket.onmessage = ({ data: text }) => {
  const { type, data } = JSON.parse(text);
  if (type === 'text.delta') process.stdout.write(data.delta);
  if (type === 'clarify_request') {
    console.log('?', data.question, data.choices);
    say({ type: 'clarify_response', requestId: data.requestId, answer: data.choices[1] });
  }
  if (type === 'interaction.request' && data.type === 'confirm') {
    console.log('approve?', data.pendingTool.toolName, data.pendingTool.argsJson);
    say({ type: 'confirm_response', requestId: data.interactionId, decision: 'approve', binding: data.binding });
  }
  if (type === 'tool.call.result') console.log('->', data.content);
  if (type === 'error') console.error(data.code, data.message);
  if (type === 'run.error' || (type === 'run.finished' && data.outcome !== 'interrupted')) socket.close();
};
