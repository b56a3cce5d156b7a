"""What a Transformer is trained for: one folder for each task.

    translate, generate, classify, tag, pretrain    recipe, batches, job, answers, task

What they share:

    task          what others ask of a task, the tasks
    evaluation    what `dragoman evaluate` gives a task, and what it prints
    recipes       recipes and sweeps, by name or from a TOML file
    folders       from a model folder to the object of its task
    options       how to decode
    encoders      what training and answering share in the tasks of an encoder
    lines         a line to chunks of ids that the model can take
    results       what a line's translation is: text, scores, alternatives, alignment
"""
