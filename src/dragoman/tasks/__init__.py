"""What a Transformer is trained for: one folder for each task.

    translate, generate, classify, tag, pretrain    recipe, batches, job, answers, task

What they share:

    task          what others ask of a task, and the table of tasks
    recipes       recipes and sweeps, by name or from a TOML file
    folders       from a model folder to the object of its task
    evaluation    what `dragoman evaluate` asks of a task, and what it prints
    options       how to decode
    encoders, reading    training batches and answers of encoders
    lines         a line to chunks of ids that the model can take
    results       what a line's translation is: text, scores, alternatives, alignment
"""
