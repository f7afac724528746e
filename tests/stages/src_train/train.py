epochs = 1
