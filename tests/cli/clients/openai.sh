# The client that OpenAI publishes for JavaScript talks to caldera serve.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
require_node_package openai

make_chat_model
start_server --api-key sesame

cat >"$work/talk.cjs" <<'JAVASCRIPT'
const {OpenAI} = require("openai");
const assert = require("assert");
const client = new OpenAI({baseURL: process.argv[2] + "/v1", apiKey: "sesame", maxRetries: 0});
const messages = [{role: "user", content: "Hello"}];
(async () => {
  const models = await client.models.list();
  const model = models.data[0].id;
  const whole = await client.chat.completions.create({model, messages, max_tokens: 20, temperature: 0});
  assert.equal(whole.choices[0].message.role, "assistant");
  assert.equal(whole.usage.completion_tokens, 20);
  let text = "", usage = null;
  const stream = await client.chat.completions.create(
    {model, messages, max_tokens: 20, temperature: 0, stream: true, stream_options: {include_usage: true}});
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(usage.completion_tokens, 20);
  const old = await client.completions.create({model, prompt: "Hello", max_tokens: 4, n: 2, logprobs: 1, seed: 1});
  assert.equal(old.choices.length, 2);
  assert.equal(old.choices[1].logprobs.tokens.length, 4);
  const schema = {type: "object", properties: {ok: {type: "boolean"}}, required: ["ok"], additionalProperties: false};
  const held = await client.chat.completions.create({model, messages, max_tokens: 100, seed: 2,
    response_format: {type: "json_schema", json_schema: {name: "answer", schema, strict: true}}});
  assert.equal(typeof JSON.parse(held.choices[0].message.content).ok, "boolean");
  const tools = [{type: "function", function: {name: "check", parameters: schema}}];
  const called = await client.chat.completions.create({model, messages, tools, tool_choice: "required", max_tokens: 200, seed: 3});
  assert.equal(called.choices[0].message.tool_calls[0].function.name, "check");
  const runner = client.chat.completions.stream({model, messages, tools, tool_choice: "required", max_tokens: 200, seed: 3});
  assert.equal((await runner.finalChatCompletion()).choices[0].finish_reason, "tool_calls");
  const choice = await client.chat.completions.create({model, messages, structured_outputs: {choice: ["yes", "no"]}, seed: 4});
  assert.ok(["yes", "no"].includes(choice.choices[0].message.content));
  // The newer API: whole, streamed, with a schema, and a call whose result goes back.
  const response = await client.responses.create({model, input: "Hello", max_output_tokens: 20, temperature: 0});
  assert.equal(response.output_text, whole.choices[0].message.content);
  const events = await client.responses.create({model, input: "Hello", max_output_tokens: 20, temperature: 0, stream: true});
  let piecewise = "", last = null;
  for await (const event of events) {
    if (event.type === "response.output_text.delta") piecewise += event.delta;
    last = event;
  }
  assert.equal(piecewise, response.output_text);
  assert.equal(last.type, "response.incomplete");
  const parsed = await client.responses.parse({model, input: "Hello", max_output_tokens: 100, seed: 2,
    text: {format: {type: "json_schema", name: "answer", schema, strict: true}}});
  assert.equal(typeof parsed.output_parsed.ok, "boolean");
  const functions = [{type: "function", name: "check", parameters: schema, strict: true}];
  const talk = client.responses.stream({model, input: "Hello", tools: functions, tool_choice: "required", max_output_tokens: 200, seed: 3});
  const made = (await talk.finalResponse()).output;
  assert.equal(made[0].name, "check");
  const answered = await client.responses.create({model, tools: functions, max_output_tokens: 5,
    input: [{role: "user", content: "Hello"}, ...made, {type: "function_call_output", call_id: made[0].call_id, output: "true"}]});
  assert.equal(answered.object, "response");
  await assert.rejects(client.responses.create({model, input: "a", previous_response_id: "resp_1"}), OpenAI.BadRequestError);
  await assert.rejects(client.chat.completions.create({model: "other", messages}), OpenAI.NotFoundError);
  await assert.rejects(client.chat.completions.create({model, messages, temperature: -1}), OpenAI.BadRequestError);
  const other = new OpenAI({baseURL: process.argv[2] + "/v1", apiKey: "wrong", maxRetries: 0});
  await assert.rejects(other.models.list(), OpenAI.AuthenticationError);
  const broken = await client.chat.completions.create({model, messages, stream: true});
  for await (const chunk of broken) if (chunk.choices[0].delta.content) break;  // leaves in the middle
  // What streams say is what whole answers say, whatever is asked for: 30 calls.
  for (const options of [{}, {stop: ["e", "a"]}, {n: 2}, {logprobs: true, top_logprobs: 2}, {logit_bias: {101: -100}}, {presence_penalty: 1},
                         {frequency_penalty: 1}, {top_p: 0.5}, {max_completion_tokens: 5}, {user: "u", metadata: {a: "b"}, store: false},
                         {response_format: {type: "json_object"}}, {reasoning_effort: "low"}, {tools, tool_choice: "none"},
                         {messages: [{role: "system", content: "S"}, {role: "user", content: [{type: "text", text: "Hi"}]}]},
                         {messages: [...messages, {role: "assistant", content: "a"}, {role: "user", content: "b"}]}]) {
    const asked = {model, messages, max_tokens: 20, temperature: 0, seed: 1, ...options};
    const one = await client.chat.completions.create(asked);
    const texts = one.choices.map(() => "");
    const ends = one.choices.map(() => null);
    for await (const chunk of await client.chat.completions.create({...asked, stream: true}))
      for (const choice of chunk.choices) {
        texts[choice.index] += choice.delta?.content ?? "";
        ends[choice.index] = choice.finish_reason ?? ends[choice.index];
      }
    assert.deepEqual(texts, one.choices.map(choice => choice.message.content ?? ""), JSON.stringify(options));
    assert.deepEqual(ends, one.choices.map(choice => choice.finish_reason), JSON.stringify(options));
  }
  // A loop of 20 tools over ten turns, whose results go back, whole and as streams by turns.
  const many = Array.from({length: 20}, (_, i) => ({type: "function", function: {name: `tool_${i}`, parameters: {type: "object",
    properties: {a: {type: "integer", minimum: 0, maximum: 9}}, required: ["a"], additionalProperties: false}}}));
  const said = [...messages];
  for (let turn = 0; turn < 10; ++turn) {
    const asked = {model, messages: said, tools: many, tool_choice: "required", max_tokens: 150, seed: turn, temperature: 1};
    const {message, finish_reason} = (turn % 2 ? await client.chat.completions.stream(asked).finalChatCompletion()
                                               : await client.chat.completions.create(asked)).choices[0];
    assert.equal(finish_reason, "tool_calls");
    const call = message.tool_calls[0];
    assert.match(call.function.name, /^tool_1?[0-9]$/);
    const {a} = JSON.parse(call.function.arguments);
    assert.ok(Number.isInteger(a) && a >= 0 && a <= 9);
    said.push({role: "assistant", content: null, tool_calls: [{id: call.id, type: "function", function: call.function}]},
              {role: "tool", tool_call_id: call.id, content: `r${turn}`});
  }
})().catch(error => { console.error(error); process.exit(1); });
JAVASCRIPT
node "$work/talk.cjs" "$url" || fail "$(cat "$work/server.log")"
stop_server
