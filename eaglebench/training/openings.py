"""How user turns begin; the target writes the rest of them itself.

A chat model that has to write a whole user turn repeats a few favourites. An opening decides what kind
of request it will be; at temperature 1 the rest differs from conversation to conversation.
"""


def _texts(text: str) -> tuple[str, ...]:
    """Texts with bars between them."""
    return tuple(each.strip() for each in text.replace("\n", " ").split("|"))


FIRST_TURNS = _texts("""\
Write a | Write an | Write a short story about | Write a poem about | Write a letter to |
Write a speech | Write a dialogue between | Write a review of | Write a persuasive | Compose a |
Compose an article about | Draft an email to | Draft a | Create a | Create an | Design a |
Develop a | Prepare a | Outline | Sketch | Tell me a story | Tell me about | Describe |
Describe a vivid | Imagine you are | Imagine that | Pretend to be | Act as a | You are a |
Suppose that | Assume you | If you could | If a | If x | A store sells | A train |
A farmer has | Two friends | There are | In a class of | John has | Maria is | The sum of |
Find the | Solve | Calculate | Prove that | Given a | Given that | Consider | How many |
How much | How do | How does | How can I | How would you | How to | Why do | Why is | Why did |
What is | What are | What would | What causes | What happens when | Which | Who was | When did |
Where | Is it | Are there | Can you | Could you | Do you | Does | Should | Explain |
Explain how | Explain why | Explain the difference between | Compare | Contrast | Discuss |
Analyze | Evaluate | Summarize | Summarize the following | Identify | Extract | Classify |
List | List five | Name three | Give me | Give an example | Provide | Suggest | Recommend |
Help me | I want to | I need | I am planning | I have a | My | Please | Translate | Rewrite |
Rephrase | Correct the grammar | Complete | Continue | Write a Python function |
Write a program | Write a C++ program | Write a SQL query | Implement | Implement a function |
Write a script | Debug | Build an HTML | In Python, | In the field of | In economics, |
In physics, | In biology, | In chemistry, | In history, | Plan a | Make a | Teach me | Let's |
Today | The following | Based on | Using | Hi | Hello
""")
LATER_TURNS = _texts("""\
Now | Can you | Could you | Please | Thanks. | What about | What if | Why | How | And |
Explain | Give me | Give an example | Write it | Rewrite | Make it | Summarize | Translate |
Shorten | Add | Change | Use | List | Is there | Are you | Do you | Which | But | In |
Continue | Expand on | Elaborate | Turn it into | Instead | Tell me more | I don't | Let's
""")
