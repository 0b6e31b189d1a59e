// node copilotkit.mjs http://127.0.0.1:8080 4000
import { createServer } from 'node:http';

import { HttpAgent } from '@ag-ui/client';
import { CopilotRuntime } from '@copilotkit/runtime/v2';
import { createCopilotNodeListener } from '@copilotkit/runtime/v2/node';

const [, , server, port] = process.argv;
const agent = new HttpAgent({ url: `${server}/api/v1/agent/ag-ui/assistant` }); // headers: {Authorization: 'Bearer KEY'}
const runtime = new CopilotRuntime({ agents: { default: agent } });
const http = createServer(createCopilotNodeListener({ runtime, basePath: '/api/copilotkit' }));
http.listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/api/copilotkit`));
