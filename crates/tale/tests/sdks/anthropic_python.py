"""The official Anthropic library for Python against the model endpoints: only address, key and model differ."""

import os

import anthropic

client = anthropic.Anthropic(base_url=os.environ["TALE"] + "/api/v1/anthropic", auth_token=os.environ["KEY"], api_key=None)
TOOLS = [
    {
        "name": "weather",
        "description": "The weather somewhere.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def say(model, content, **more):
    return client.messages.create(model=model, max_tokens=100, messages=[{"role": "user", "content": content}], **more)


for model in ["open/able", "claude/able"]:
    whole = say(model, "hello", system="Be kind.")
    assert whole.model == model and whole.content[-1].text == "Grüße 🦀 to you" and whole.stop_reason == "end_turn", whole
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (20, 10), whole.usage

    with client.messages.stream(model=model, max_tokens=100, messages=[{"role": "user", "content": "hello"}]) as stream:
        assert "".join(stream.text_stream) == "Grüße 🦀 to you"
        final = stream.get_final_message()
    assert final.model == model and (final.usage.input_tokens, final.usage.output_tokens) == (20, 10), final

    messages = [{"role": "user", "content": "tools"}]
    with client.messages.stream(model=model, max_tokens=100, messages=messages, tools=TOOLS) as stream:
        answer = stream.get_final_message()
    calls = [block for block in answer.content if block.type == "tool_use"]
    assert answer.stop_reason == "tool_use" and [call.input for call in calls] == [{"city": "Zürich"}, {"city": "Genève"}]
    messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "7 degrees"} for call in calls]
    messages.append({"role": "user", "content": results})
    after = client.messages.create(model=model, max_tokens=100, messages=messages, tools=TOOLS)
    assert after.content[-1].text == "7 degrees in Zürich and 7 degrees in Genève", after

    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    assert say(model, [{"type": "text", "text": "image"}, image]).content[-1].text == "I see an image"
    assert say(model, "overloaded once").content[-1].text == "At last"
    try:
        say(model, "refuse")
        raise AssertionError("not refused")
    except anthropic.BadRequestError as error:
        assert error.body["error"]["code"] == "MODEL_API_UPSTREAM_ERROR" and "too long" in error.message, error
    try:
        for _ in say(model, "break off", stream=True):
            pass
        raise AssertionError("not broken off")
    except anthropic.APIStatusError as error:
        assert "Overloaded" in error.message, error

try:
    say("open/nothing", "hello")
    raise AssertionError("found")
except anthropic.NotFoundError as error:
    assert error.body["error"]["code"] == "MODEL_API_MODEL_UNKNOWN", error
try:
    say("open/able", "hello", tools=[{"type": "web_search_20250305", "name": "web_search"}])
    raise AssertionError("accepted")
except anthropic.BadRequestError as error:
    assert error.body["error"]["code"] == "MODEL_API_VENDOR_TOOL_UNSUPPORTED", error
# The header that Anthropic itself takes keys in is refused, even beside a good one.
try:
    client.with_options(default_headers={"x-api-key": os.environ["KEY"]}).messages.create(
        model="open/able", max_tokens=5, messages=[{"role": "user", "content": "hello"}]
    )
    raise AssertionError("let in")
except anthropic.AuthenticationError as error:
    assert error.body["error"]["code"] == "UNAUTHORIZED", error
print("ok")
