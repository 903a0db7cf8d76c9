"""The official OpenAI library for Python against the model endpoints: only address, key and model differ."""

import os

import openai

client = openai.OpenAI(base_url=os.environ["TALE"] + "/api/v1/openai", api_key=os.environ["KEY"])
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather somewhere.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def say(model, text, **more):
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}], **more)


listed = sorted(model.id for model in client.models.list())
assert listed == ["claude/able", "open/able"], listed

for model in listed:
    whole = say(model, "hello")
    assert whole.model == model and whole.choices[0].message.content == "Grüße 🦀 to you", whole
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (20, 10), whole.usage

    chunks = list(say(model, "hello", stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Grüße 🦀 to you"
    assert all(chunk.model == model and chunk.usage is None for chunk in chunks)
    with_usage = list(say(model, "hello", stream=True, stream_options={"include_usage": True}))
    assert with_usage[-1].usage.total_tokens == 30 and with_usage[-1].choices == []

    # Parallel tools, streamed, and the round after them.
    messages = [{"role": "user", "content": "tools"}]
    with client.chat.completions.stream(model=model, messages=messages, tools=TOOLS) as stream:
        answer = stream.get_final_completion().choices[0]
    calls = answer.message.tool_calls
    assert answer.finish_reason == "tool_calls" and [call.id for call in calls] == ["call_a", "call_b"]
    assert [call.function.arguments for call in calls] == ['{"city":"Zürich"}', '{"city":"Genève"}'], calls
    messages.append(answer.message.model_dump(exclude_none=True, exclude={"parsed"}))
    for call in calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "7 degrees"})
    after = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    assert after.choices[0].message.content == "7 degrees in Zürich and 7 degrees in Genève", after

    parts = [{"type": "text", "text": "image"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    assert say(model, parts).choices[0].message.content == "I see an image"

    # A provider that is overloaded once: the library tries again by itself.
    assert say(model, "overloaded once").choices[0].message.content == "At last"

    try:
        say(model, "refuse")
        raise AssertionError("not refused")
    except openai.BadRequestError as error:
        assert error.code == "MODEL_API_UPSTREAM_ERROR" and "too long" in error.message, error
    try:
        list(say(model, "break off", stream=True))
        raise AssertionError("not broken off")
    except openai.APIError as error:
        assert "Overloaded" in error.message, error

try:
    say("open/nothing", "hello")
    raise AssertionError("found")
except openai.NotFoundError as error:
    assert error.code == "MODEL_API_MODEL_UNKNOWN" and error.request_id, error
try:
    say("open/able", "hello", n=9)
    raise AssertionError("accepted")
except openai.BadRequestError as error:
    assert error.code == "INVALID_BODY", error
try:
    openai.OpenAI(base_url=client.base_url, api_key="tale_u_wrong").models.list()
    raise AssertionError("let in")
except openai.AuthenticationError as error:
    assert error.code == "UNAUTHORIZED", error
print("ok")
