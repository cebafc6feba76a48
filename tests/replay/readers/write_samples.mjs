// Writes what the `ai` package and Gemini CLI write of a scripted run into the folder that is named.
import fs from 'node:fs';
import path from 'node:path';
import { generateText, readUIMessageStream, stepCountIs, streamText, tool } from 'ai';
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test';
import { z } from 'zod';

const out = process.argv[2];
const steps = [
  [['search', { query: 'a' }], ['read_file', { path: 'b' }]],
  [['search', { query: 'broken' }]],
  [['search', { query: 'a' }]],
];
const tools = {
  search: tool({
    inputSchema: z.object({ query: z.string() }),
    execute: async ({ query }) => {
      if (query === 'broken') throw new Error('the index is broken');
      return 'three hits';
    },
  }),
  read_file: tool({
    inputSchema: z.object({ path: z.string() }),
    execute: async (given) => ({ text: `the text of ${given.path}` }),
  }),
};
const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

function answers() {
  let number = 0;
  return () => {
    const step = steps[number];
    const content = step
      ? step.map(([toolName, input], at) => ({
          type: 'tool-call', toolCallId: `c${number}${at}`, toolName, input: JSON.stringify(input),
        }))
      : [{ type: 'text', text: 'done' }];
    number += 1;
    const unified = step ? 'tool-calls' : 'stop';
    return { content, finishReason: { unified, raw: unified } };
  };
}

const next = answers();
const model = new MockLanguageModelV3({
  doGenerate: async () => ({ ...next(), usage, warnings: [] }),
});
const prompt = [{ role: 'user', content: 'find it' }];
const result = await generateText({ model, tools, messages: prompt, stopWhen: stepCountIs(9) });
const messages = [...prompt, ...result.response.messages];
fs.writeFileSync(path.join(out, 'vercel_messages.json'), JSON.stringify(messages));

const later = answers();
const streaming = new MockLanguageModelV3({
  doStream: async () => {
    const { content, finishReason } = later();
    const chunks = [{ type: 'stream-start', warnings: [] }];
    for (const part of content) {
      if (part.type === 'text') {
        chunks.push({ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: part.text },
          { type: 'text-end', id: 't' });
      } else chunks.push(part);
    }
    chunks.push({ type: 'finish', finishReason, usage });
    return { stream: simulateReadableStream({ chunks }) };
  },
});
const user = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'find it' }] };
const stream = streamText({ model: streaming, tools, messages: prompt, stopWhen: stepCountIs(9) });
let last;
for await (const one of readUIMessageStream({ stream: stream.toUIMessageStream() })) last = one;
fs.writeFileSync(path.join(out, 'vercel_ui.json'), JSON.stringify([user, last]));

const { ChatRecordingService } = await import('@google/gemini-cli-core');
const config = {
  toolRegistry: { getTool: () => undefined },
  promptId: '11111111-2222-3333-4444-555555555555',
  getSessionId: () => '11111111-2222-3333-4444-555555555555',
  getProjectRoot: () => '/project',
  storage: { getProjectTempDir: () => out },
  getModel: () => 'gemini-pro',
  getDebugMode: () => false,
  getWorkspaceContext: () => ({ getDirectories: () => [] }),
  getToolRegistry: () => ({ getTool: () => undefined }),
};
config.config = config;
const service = new ChatRecordingService(config);
await service.initialize(undefined, 'main');
service.recordMessage({ model: 'gemini-pro', type: 'user', content: 'find it' });
let at = 0;
for (const step of steps) {
  service.recordMessage({ model: 'gemini-pro', type: 'gemini', content: '' });
  const calls = step.map(([name, args]) => {
    const broken = args.query === 'broken';
    const id = `c${at++}`;
    const response = broken ? { error: 'the index is broken' } : { output: 'three hits' };
    return {
      id, name, args, timestamp: new Date().toISOString(), status: broken ? 'error' : 'success',
      result: [{ functionResponse: { id, name, response } }],
    };
  });
  service.recordToolCalls('gemini-pro', calls);
}
service.recordMessage({ model: 'gemini-pro', type: 'gemini', content: 'done' });
process.exit(0);
